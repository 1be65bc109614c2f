-- What rocprofv3 --runtime-trace --output-format rocpd writes, in the columns that are read.
create table "rocpd_string_1a2b"(id integer primary key, guid text, string text);
create table "rocpd_info_process_1a2b"(id integer primary key, guid text, nid integer, pid integer, command text);
create table "rocpd_info_thread_1a2b"(id integer primary key, guid text, pid integer, tid integer);
create table "rocpd_info_agent_1a2b"(id integer primary key, guid text, type text, type_index integer, name text);
create table "rocpd_info_kernel_symbol_1a2b"(id integer primary key, guid text, kernel_name text, display_name text);
create table "rocpd_event_1a2b"(id integer primary key, guid text, category_id integer, stack_id integer, extdata text);
create table "rocpd_region_1a2b"(id integer primary key, guid text, nid integer, pid integer, tid integer, start bigint,
  "end" bigint, name_id integer, event_id integer);
create table "rocpd_kernel_dispatch_1a2b"(id integer primary key, guid text, pid integer, tid integer, agent_id integer,
  kernel_id integer, dispatch_id integer, queue_id integer, stream_id integer, start bigint, "end" bigint,
  workgroup_size_x integer, workgroup_size_y integer, workgroup_size_z integer, grid_size_x integer,
  grid_size_y integer, grid_size_z integer, event_id integer);
create table "rocpd_memory_copy_1a2b"(id integer primary key, guid text, pid integer, tid integer, start bigint,
  "end" bigint, name_id integer, dst_agent_id integer, src_agent_id integer, size integer, queue_id integer,
  stream_id integer, event_id integer);
insert into "rocpd_string_1a2b"(id, string) values (1, 'HIP_RUNTIME_API'), (2, 'MARKER_CORE_RANGE_API'),
  (3, 'hipLaunchKernel'), (4, 'roctxThreadRangeA'), (5, 'MEMORY_COPY_HOST_TO_DEVICE'), (6, 'hipMemcpy'),
  (7, 'HSA_CORE_API'), (8, 'hsa_signal_wait'), (9, 'KERNEL_DISPATCH'), (10, 'MEMORY_COPY');
insert into "rocpd_info_process_1a2b"(id, pid, command) values (1, 70, './app');
insert into "rocpd_info_thread_1a2b"(id, pid, tid) values (1, 1, 77);
insert into "rocpd_info_agent_1a2b"(id, type, type_index, name) values (1, 'CPU', 0, 'EPYC'), (2, 'GPU', 0, 'gfx942'),
  (3, 'GPU', 1, 'gfx942');
insert into "rocpd_info_kernel_symbol_1a2b"(id, kernel_name, display_name)
  values (1, '_Z10vector_addPfi.kd', 'vector_add(float*, int) [clone .kd]');
insert into "rocpd_event_1a2b"(id, category_id, stack_id, extdata) values (1, 2, 1, '{"message": "step"}'),
  (2, 1, 2, '{}'), (3, 1, 3, '{}'), (4, 9, 3, '{}'), (5, 10, 2, '{}'), (6, 7, 4, '{}');
insert into "rocpd_region_1a2b"(id, nid, pid, tid, start, "end", name_id, event_id) values
  (1, 1, 1, 1, 5000100000, 5001000000, 4, 1), (2, 1, 1, 1, 5000120000, 5000205000, 6, 2),
  (3, 1, 1, 1, 5000300000, 5000310000, 3, 3), (4, 1, 1, 1, 5000400000, 5000410000, 8, 6);
insert into "rocpd_kernel_dispatch_1a2b"(id, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start,
  "end", workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id)
  values (1, 1, 1, 3, 1, 1, 1, 4, 5000320000, 5000720000, 64, 1, 1, 1024, 1, 1, 4);
insert into "rocpd_memory_copy_1a2b"(id, pid, tid, start, "end", name_id, dst_agent_id, src_agent_id, size, queue_id,
  stream_id, event_id) values (1, 1, 1, 5000150000, 5000200000, 5, 3, 1, 4096, 1, 4, 5);
