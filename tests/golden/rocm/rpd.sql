-- What rocmProfileData writes, in the columns that are read.
create table rocpd_string(id integer primary key, string text);
create table rocpd_api(id integer primary key, pid integer, tid integer, start integer, "end" integer,
  apiName_id integer, args_id integer);
create table rocpd_op(id integer primary key, gpuId integer, queueId integer, sequenceId integer, start integer,
  "end" integer, description_id integer, opType_id integer);
create table rocpd_api_ops(id integer primary key, api_id integer, op_id integer);
create table rocpd_kernelapi(api_ptr_id integer primary key, stream text, gridX integer, gridY integer, gridZ integer,
  workgroupX integer, workgroupY integer, workgroupZ integer);
create table rocpd_copyapi(api_ptr_id integer primary key, stream text, size integer);
insert into rocpd_string values (1, ''), (2, 'hipLaunchKernel'), (3, 'vector_add(float*, int)'), (4, 'UserMarker'),
  (5, 'step'), (6, 'KernelExecution'), (7, 'CopyHostToDevice'), (8, 'hipMemcpy'), (9, 'OpTable::writeRows'),
  (10, 'count=2'), (11, 'Barrier');
insert into rocpd_api values (1, 70, 77, 5000100000, 5001000000, 4, 5), (2, 70, 77, 5000120000, 5000205000, 8, 1),
  (3, 70, 77, 5000300000, 5000310000, 2, 1), (4, 70, 78, 5000800000, 5000900000, 9, 10);
insert into rocpd_op values (1, 1, 4, 0, 5000150000, 5000200000, 1, 7), (2, 1, 4, 1, 5000320000, 5000720000, 3, 6),
  (3, 1, 4, 2, 5000720000, 5000720100, 1, 11);
insert into rocpd_api_ops values (1, 2, 1), (2, 3, 2);
insert into rocpd_kernelapi values (3, '0x0', 16, 1, 1, 64, 1, 1);
insert into rocpd_copyapi values (2, '0x0', 4096);
