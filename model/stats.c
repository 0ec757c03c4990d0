/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c: field tables of statistics. Runs in: supervisor, cli. */
#include "model/stats.h"

#include "model/engine/table.h"

#define S memory_stats
static const struct field memory_stats_fields[] = {
	F_UINT(rss, "RSS"),
	F_UINT(cache, "Cache"),
	F_UINT(swap, "Swap"),
	F_UINT(mapped_file, "MappedFile"),
	F_UINT(usage, "Usage"),
	F_UINT(max_usage, "MaxUsage"),
	F_UINT(kernel_usage, "KernelUsage"),
	F_UINT(kernel_max_usage, "KernelMaxUsage"),
	F_STRINGS(measured, "Measured"),
};
MODEL_TYPE(memory_stats, memory_stats_fields, .name = "memory");
#undef S

#define S cpu_stats
static const struct field cpu_stats_fields[] = {
	F_DOUBLE(system_mode, "SystemMode"),
	F_DOUBLE(user_mode, "UserMode"),
	F_DOUBLE(total_ticks, "TotalTicks"),
	F_UINT(throttled_periods, "ThrottledPeriods"),
	F_UINT(throttled_time, "ThrottledTime"),
	F_DOUBLE(percent, "Percent"),
	F_STRINGS(measured, "Measured"),
};
MODEL_TYPE(cpu_stats, cpu_stats_fields, .name = "cpu");
#undef S

#define S resource_usage
static const struct field resource_usage_fields[] = {
	F_POINTER(memory_stats, "MemoryStats", memory_stats),
	F_POINTER(cpu_stats, "CpuStats", cpu_stats),
	F_JSON(device_stats, "DeviceStats"),
};
MODEL_TYPE(resource_usage, resource_usage_fields, .name = "usage");
#undef S

#define S task_usage
static const struct field task_usage_fields[] = {
	F_POINTER(resource_usage, "ResourceUsage", resource_usage),
	F_INT(timestamp, "Timestamp"),
	F_MAP(pids, "Pids", resource_usage),
};
MODEL_TYPE(task_usage, task_usage_fields, .name = "usage");
#undef S

#define S alloc_usage
static const struct field alloc_usage_fields[] = {
	F_POINTER(resource_usage, "ResourceUsage", resource_usage),
	F_MAP(tasks, "Tasks", task_usage, .flags = FIELD_NOT_NIL),
	F_INT(timestamp, "Timestamp"),
};
MODEL_TYPE(alloc_usage, alloc_usage_fields, .name = "usage");
#undef S

#define S host_memory
static const struct field host_memory_fields[] = {
	F_UINT(total, "Total"),
	F_UINT(available, "Available"),
	F_UINT(used, "Used"),
	F_UINT(free, "Free"),
};
MODEL_TYPE(host_memory, host_memory_fields, .name = "memory");
#undef S

#define S host_cpu
static const struct field host_cpu_fields[] = {
	F_STRING(cpu, "CPU"),
	F_DOUBLE(user, "User"),
	F_DOUBLE(system, "System"),
	F_DOUBLE(idle, "Idle"),
	F_DOUBLE(total_percent, "TotalPercent"),
	F_DOUBLE(total_ticks, "TotalTicks"),
};
MODEL_TYPE(host_cpu, host_cpu_fields, .name = "cpu");
#undef S

#define S host_disk
static const struct field host_disk_fields[] = {
	F_STRING(device, "Device"),
	F_STRING(mountpoint, "Mountpoint"),
	F_UINT(size, "Size"),
	F_UINT(used, "Used"),
	F_UINT(available, "Available"),
	F_DOUBLE(used_percent, "UsedPercent"),
	F_DOUBLE(inodes_used_percent, "InodesUsedPercent"),
};
MODEL_TYPE(host_disk, host_disk_fields, .name = "disk");
#undef S

#define S host_stats
static const struct field host_stats_fields[] = {
	F_POINTER(memory, "Memory", host_memory),
	F_LIST(cpu, "CPU", host_cpu),
	F_LIST(disk_stats, "DiskStats", host_disk),
	F_POINTER(alloc_dir_stats, "AllocDirStats", host_disk),
	F_JSON(device_stats, "DeviceStats"),
	F_UINT(uptime, "Uptime"),
	F_INT(timestamp, "Timestamp"),
	F_DOUBLE(cpu_ticks_consumed, "CPUTicksConsumed"),
};
MODEL_TYPE(host_stats, host_stats_fields, .name = "stats");
#undef S
