//! Short results of other tools.

/// One short sample of each family of formats.
pub const SAMPLES: &[&str] = &[
    r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "error": 0, "job options": {"rw": "randread",
       "bs": "4k", "iodepth": "8"}, "read": {"io_bytes": 40960000, "io_kbytes": 40000, "bw_bytes": 4096000,
       "iops": 1000.0, "runtime": 10000, "total_ios": 10000, "clat_ns": {"min": 5, "max": 900, "mean": 100.5,
       "percentile": {"50.000000": 99, "99.000000": 500}}}}]}"#,
    "a: (g=0): rw=read, bs=1M-1M/1M-1M/1M-1M, ioengine=libaio, iodepth=32\na: (groupid=0, jobs=4): err= 0: pid=8: x\n  \
     read : io=2393.0MB, bw=40810KB/s, iops=39, runt= 60045msec\n    clat (usec): min=14, max=4935.4K, avg=303.71, \
     stdev=7.8\n    clat percentiles (msec):\n     |  1.00th=[  766], 99.99th=[ 4948]\n",
    "10:00:00.000 Starting RD=rd1; For loops: None\nJan 24, 2019 interval i/o MB/sec bytes read resp read write resp resp \
     queue\n rate 1024**2 i/o pct time resp resp max stddev depth\n10:00:01.000 1 20000.0 78.13 4096 50.0 0.4 0.3 0.5 \
     9.0 0.1 8.0\n10:00:02.000 avg_1-1 20000.0 78.13 4096 50.0 0.4 0.3 0.5 9.0 0.1 8.0\n",
    "[run]\nprocs = 2\n[ior-easy-write]\nt_start = 2020-10-31 10:00:00\nscore = 2.0\nt_delta = \
     300.2\nt_end = 2020-10-31 10:05:00\n[ior-hard-write]\nscore = 1.0\n[SCORE]\nBW = 1.4\nMD = \
     9.0\nSCORE = 3.5\n",
    r#"{"num_accelerators": 2, "num_files_train": 1000, "num_samples_per_file": 1, "metric":
       {"train_au_percentage": [90.0, 94.0], "train_au_mean_percentage": 92.0, "train_throughput_samples_per_second":
       [100.0, 110.0], "train_throughput_mean_samples_per_second": 105.0}, "start": "2024-09-09T12:00:00", "end":
       "2024-09-09T12:00:30", "epochs": 2}"#,
    "<Results><Profile><TimeSpans><TimeSpan><Targets><Target><Path>f</Path><BlockSize>4096</BlockSize><RequestCount>8</RequestCount></Target></Targets></TimeSpan></TimeSpans></Profile><TimeSpan><TestTimeSeconds>10.0</TestTimeSeconds><Thread><Id>0</Id><Target><Path>f</Path><ReadBytes>409600</ReadBytes><ReadCount>100</ReadCount></Target></Thread></TimeSpan></Results>",
    "| bs | IOPS | MB/s | lat (us) | QD |\n|---|---|---|---|---|\n| 4K | 100,000 | 410 | 320 | 32 |\n",
    "bs;iops;bw (MB/s);lat_ms\n4k;100k;409,6;0,32\n",
    "64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.212157 s, 316 MB/s\n",
    "<html>Jetstress<table><tr><td>Achieved Transactional I/O per \
     Second</td><td>650.2</td></tr></table><table><tr><th>I </th><th>Database \
     Reads/sec</th><th>Database Writes/sec</th><th>Log \
     Writes/sec</th></tr><tr><td>a</td><td>400.2</td><td>250.0</td><td>60</td></tr></table></html>",
    r#"{"v": 2, "by_op_type": {"GET": {"concurrency": 8, "throughput": {"measure_duration_millis": 10000, "bytes":
       1048576000, "ops": 1000}, "requests_by_client": {"c": [{"single_sized_requests": {"dur_avg_millis": 79.0}}]}}}}"#,
    "index\top\thost\tduration_s\tobjects_per_op\tbytes\tfull_ops\tpartial_ops\tops_started\tops_ended\terrors\tmb_per_sec\tops_ended_per_sec\tobjs_per_sec\tstart_time\tend_time\n0\tGET\t\t2\t1\t41943040\t18\t4\t20\t20\t0\t20\t10\t10\t2024-05-01 \
     10:00:00 +0000 UTC\t2024-05-01 10:00:02 +0000 UTC\n",
    "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns\n0\t1\tPUT\tc\t1\t1048576\thttp://h\tf\t\t2024-05-01T10:00:00.0Z\t\t2024-05-01T10:00:00.5Z\t500000000\n",
    "0 1 4000 0 1700000000 4000\n1 1 4000 0 1700000000 4100\n0 2 4100 0 1700000000 8100\n",
    "pgbench (15.4)\nnumber of clients: 2\nnumber of threads: 1\nduration: 3 s\nnumber of \
     transactions actually processed: 1500\nlatency average = 4.010 ms\ntps = 499.100000 (without \
     initial connection time)\n",
    "mdtest-3.4.0 was launched with 16 total task(s) on 2 node(s)\n16 tasks, 16000 files\n\nSUMMARY rate: (of 1 iterations)\n   \
     Operation   Max  Min  Mean  Std Dev\n   File creation   20000.500  20000.500  20000.500  0.000\n\nSUMMARY time: (of 1 \
     iterations)\n   File creation  0.800  0.800  0.800  0.000\n",
    "sysbench 1.0.20\n\nNumber of threads: 1\n64MiB total file size\nBlock size 16KiB\nUsing synchronous I/O mode\nDoing \
     random read test\n\nFile operations:\n    reads/s:  6000.00\n    writes/s:  0.00\n\nThroughput:\n    read, MiB/s:  \
     93.75\n\nGeneral statistics:\n    total time:   3.0000s\n    total number of events:              18000\n\nLatency (ms):\n  \
     min:  0.00\n  avg:  0.16\n  max:  13.17\n",
    "--- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n2.00 k requests completed in 3.00 s, \
     31.2 MiB written, 665 iops, 10.4 MiB/s\ngenerated 2 k requests in 3.02 s, 31.2 MiB, 661 iops, \
     10.3 MiB/s\nmin/avg/max/mdev = 71.4 us / 1.50 ms / 25.7 ms / 2.27 ms\n",
    "FIO version - fio-3.30\nJobName: read_iops\n  blocksize=4K filesize=2G iodepth=64 rw=randread\nread:\n  IOPS=727.29 \
     BW(KiB/s)=2925\n",
    "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\ntasks : 4\naggregate filesize  : 1 GiB\naccess    bw(MiB/s)  IOPS  \
     Latency(s)  block(KiB) xfer(KiB)  open(s)  wr/rd(s)  close(s)  total(s)  iter\nwrite  1023.98  1282.02  0.003117  16384  \
     1024.00  0.000123  0.798736  0.201100  1.00  0\nMax Write: 1023.98 MiB/sec (1073.72 MB/sec)\n",
];
