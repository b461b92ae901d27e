// What the C++ peers share: reading an instance, timing runs, writing flows.
//
// Standard input, little endian, is the program of wire.go; standard output is
// the median seconds, the number of runs, the peak of resident bytes and the
// flow of every pair, all as doubles.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Instance {
  int64_t sources, engines, pairs, segments;
  std::vector<double> supply;              // per source, mean 1
  std::vector<int32_t> tail, head;         // per pair: source, engine
  std::vector<double> cost;                // per pair, ms per unit of flow
  std::vector<int32_t> segment_engine;     // per segment, cheapest first
  std::vector<double> width, slope;        // per segment: flow, ms per unit
};

// fail ends the program with status 1, which the benchmark shows as an error.
[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

template <class T>
void read_all(std::vector<T>& v, int64_t n) {
  v.resize(n);
  if (std::fread(v.data(), sizeof(T), n, stdin) != size_t(n)) fail("instance is cut short");
}

inline Instance read_instance() {
  std::vector<int64_t> head;
  read_all(head, 4);
  Instance in{head[0], head[1], head[2], head[3], {}, {}, {}, {}, {}, {}, {}};
  read_all(in.supply, in.sources);
  read_all(in.tail, in.pairs);
  read_all(in.head, in.pairs);
  read_all(in.cost, in.pairs);
  read_all(in.segment_engine, in.segments);
  read_all(in.width, in.segments);
  read_all(in.slope, in.segments);
  return in;
}

// peak_bytes is the peak of resident memory, -1 where the system does not say.
inline double peak_bytes() {
  FILE* f = std::fopen("/proc/self/status", "r");
  if (!f) return -1;
  char line[256];
  double kb = -1;
  while (std::fgets(line, sizeof line, f))
    if (std::sscanf(line, "VmHWM: %lf", &kb) == 1) break;
  std::fclose(f);
  return kb < 0 ? -1 : kb * 1024;
}

// budget_seconds is after how long no further run of an instance is started.
const double budget_seconds = 2;

// run_and_write calls solve until it has run runs times or the budget is used
// up, and writes the flows of the last run. A first run that takes longer than
// limit_seconds ends the program with SIGALRM.
template <class Solve>
void run_and_write(int limit_seconds, int runs, Solve solve) {
  std::vector<double> seconds, flow;
  double total = 0;
  alarm(limit_seconds);
  do {
    auto start = std::chrono::steady_clock::now();
    flow = solve();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    alarm(0);
    total += seconds.back();
  } while (int(seconds.size()) < runs && total < budget_seconds);
  std::sort(seconds.begin(), seconds.end());
  double head[3] = {seconds[seconds.size() / 2], double(seconds.size()), peak_bytes()};
  std::fwrite(head, sizeof(double), 3, stdout);
  std::fwrite(flow.data(), sizeof(double), flow.size(), stdout);
}
