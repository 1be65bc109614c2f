-- What rocprof --hip-trace --roctx-trace writes to results.db.
create table HIP("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" text, "args" text,
  "Index" integer);
create table OPS("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer,
  "tid" integer, "Index" integer);
create table COPY("BeginNs" integer, "EndNs" integer, "dev-id" integer, "queue-id" integer, "Name" text, "pid" integer,
  "tid" integer, "Index" integer);
create table rocTX("BeginNs" integer, "EndNs" integer, "pid" integer, "tid" integer, "Name" text);
insert into HIP values (5000120000, 5000205000, 70, 77, 'hipMemcpy', '( sizeBytes(4096) kind(1))', 4),
  (5000300000, 5000310000, 70, 77, 'hipLaunchKernel', '( stream(1))', 8);
insert into COPY values (5000150000, 5000200000, 1, 4, 'CopyHostToDevice', 70, 77, 4);
insert into OPS values (5000320000, 5000720000, 1, 4, 'vector_add(float*, int) [clone .kd]', 70, 77, 8);
insert into rocTX values (5000100000, 5001000000, 70, 77, 'step');
