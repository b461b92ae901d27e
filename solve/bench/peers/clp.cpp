// CLP as a peer: clp SETTING LIMIT RUNS. SETTING is dual (its dual simplex as
// it is) or presolve (presolve, then what CLP finds best).
//
// A run is timed from arrays in CLP's form to the flows.
#include <ClpSimplex.hpp>
#include <ClpSolve.hpp>

#include "instance.h"

// Program has a column per pair and per segment; a row per source, what leaves
// it = supply, and per engine, what arrives - what its segments take = 0.
struct Program {
  int rows, columns;
  int64_t pairs;
  std::vector<CoinBigIndex> start{0};
  std::vector<int> row;
  std::vector<double> element, upper, cost, right;

  explicit Program(const Instance& in)
      : rows(in.sources + in.engines), columns(in.pairs + in.segments), pairs(in.pairs), cost(in.cost), right(in.supply) {
    right.resize(rows);
    cost.insert(cost.end(), in.slope.begin(), in.slope.end());
    upper.assign(in.pairs, COIN_DBL_MAX);
    upper.insert(upper.end(), in.width.begin(), in.width.end());
    auto put = [&](int r, double v) { row.push_back(r), element.push_back(v); };
    for (int64_t k = 0; k < in.pairs; k++) {
      put(in.tail[k], 1), put(in.sources + in.head[k], 1);
      start.push_back(row.size());
    }
    for (int64_t i = 0; i < in.segments; i++) {
      put(in.sources + in.segment_engine[i], -1);
      start.push_back(row.size());
    }
  }

  std::vector<double> solve(bool presolve) const {
    ClpSimplex model;
    model.setLogLevel(0);
    model.loadProblem(columns, rows, start.data(), row.data(), element.data(), nullptr, upper.data(), cost.data(), right.data(), right.data());
    if (presolve) {
      ClpSolve options;
      options.setSolveType(ClpSolve::automatic);
      options.setPresolveType(ClpSolve::presolveOn);
      model.initialSolve(options);
    } else {
      model.dual();
    }
    if (model.status() != 0) fail("CLP finds no optimum");
    const double* x = model.primalColumnSolution();
    return std::vector<double>(x, x + pairs);
  }
};

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: clp SETTING LIMIT RUNS");
  bool presolve = !std::strcmp(argv[1], "presolve");
  if (!presolve && std::strcmp(argv[1], "dual")) fail("SETTING must be dual or presolve");
  Program program(read_instance());
  run_and_write(std::atoi(argv[2]), std::atoi(argv[3]), [&] { return program.solve(presolve); });
}
