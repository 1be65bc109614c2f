-- The statements of database.cpp: above each the tool, the table that it needs, and the category of its events. $ is the
-- UUID behind the names of rocprofv3's tables. A join adds columns to an event and never another event: what is joined by
-- a number that may repeat is grouped by it first.

-- rocprof HIP hip_runtime
select Name name, BeginNs start, EndNs "end", pid, tid, "Index" correlation from HIP

-- rocprof rocTX user_annotation
select Name name, BeginNs start, EndNs "end", pid, tid from rocTX

-- rocprof OPS kernel
select Name name, BeginNs start, EndNs "end", pid, tid, "Index" correlation, "dev-id" device,
  "queue-id" stream from OPS

-- rocprof COPY gpu_memcpy
select c.Name name, c.BeginNs start, c.EndNs "end", c.pid, c.tid, c."Index" correlation,
  c."dev-id" device, c."queue-id" stream, h.args from COPY c
  left join (select "Index", min(args) args from HIP group by "Index") h on h."Index" = c."Index"

-- rocmProfileData rocpd_api hip_runtime
select n.string name, a.start, a."end", a.pid, a.tid, a.id correlation, g.string args
  from rocpd_api a join rocpd_string n on n.id = a.apiName_id
  left join rocpd_string g on g.id = a.args_id

-- rocmProfileData rocpd_op kernel
select coalesce(nullif(d.string, ''), t.string) name, o.start, o."end", o.gpuId device,
  o.queueId stream, x.api_id correlation, t.string type, k.gridX grid_x, k.gridY grid_y,
  k.gridZ grid_z, k.workgroupX block_x, k.workgroupY block_y, k.workgroupZ block_z, c.size bytes
  from rocpd_op o join rocpd_string t on t.id = o.opType_id
  left join rocpd_string d on d.id = o.description_id
  left join (select op_id, min(api_id) api_id from rocpd_api_ops group by op_id) x on x.op_id = o.id
  left join (select * from rocpd_kernelapi group by api_ptr_id) k on k.api_ptr_id = x.api_id
  left join (select api_ptr_id, min(size) size from rocpd_copyapi group by api_ptr_id) c
  on c.api_ptr_id = x.api_id

-- rocprofv3 rocpd_region$ hip_runtime
select coalesce(case when c.string like 'MARKER_%' then json_extract(e.extdata, '$.message') end,
  n.string) name, r.start, r."end", p.pid, t.tid, e.stack_id correlation, c.string type
  from "rocpd_region$" r join "rocpd_string$" n on n.id = r.name_id
  left join "rocpd_event$" e on e.id = r.event_id left join "rocpd_string$" c on c.id = e.category_id
  left join "rocpd_info_process$" p on p.id = r.pid left join "rocpd_info_thread$" t on t.id = r.tid

-- rocprofv3 rocpd_kernel_dispatch$ kernel
select coalesce(s.display_name, s.kernel_name) name, k.start, k."end", p.pid,
  e.stack_id correlation, a.type_index device, k.stream_id stream,
  k.grid_size_x / max(k.workgroup_size_x, 1) grid_x, k.grid_size_y / max(k.workgroup_size_y,
  1) grid_y, k.grid_size_z / max(k.workgroup_size_z, 1) grid_z, k.workgroup_size_x block_x,
  k.workgroup_size_y block_y, k.workgroup_size_z block_z from "rocpd_kernel_dispatch$" k
  left join "rocpd_info_kernel_symbol$" s on s.id = k.kernel_id
  left join "rocpd_event$" e on e.id = k.event_id left join "rocpd_info_agent$" a on a.id = k.agent_id
  left join "rocpd_info_process$" p on p.id = k.pid

-- rocprofv3 rocpd_memory_copy$ gpu_memcpy
select n.string name, m.start, m."end", p.pid, e.stack_id correlation, m.stream_id stream,
  m.size bytes, max(coalesce(case when d.type = 'GPU' then d.type_index end, -1),
  coalesce(case when s.type = 'GPU' then s.type_index end, -1)) device from "rocpd_memory_copy$" m
  left join "rocpd_string$" n on n.id = m.name_id left join "rocpd_event$" e on e.id = m.event_id
  left join "rocpd_info_process$" p on p.id = m.pid
  left join "rocpd_info_agent$" d on d.id = m.dst_agent_id
  left join "rocpd_info_agent$" s on s.id = m.src_agent_id
