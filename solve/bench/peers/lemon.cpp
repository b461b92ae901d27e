// LEMON's minimum cost flow algorithms as a peer: lemon SETTING LIMIT RUNS,
// SETTING is network-simplex or cost-scaling.
//
// A run is timed from the graph in LEMON's form to the flows.
#include <lemon/cost_scaling.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <cmath>
#include <memory>

#include "instance.h"

using Graph = lemon::SmartDigraph;
using Map = Graph::ArcMap<long long>;

// Both algorithms want whole numbers. All supplies together become 2^44 units
// and the mean cost of a pair 2^24, so that rounding costs less than 1e-7.
const double total_units = 0x1p44, mean_cost_units = 0x1p24;

struct Network {
  Graph graph;
  Map cost{graph}, capacity{graph};
  Graph::NodeMap<long long> supply{graph};
  double units;  // per unit of flow

  explicit Network(const Instance& in) : units(total_units / in.sources) {
    double mean = 0;
    for (double c : in.cost) mean += c / in.pairs;
    double scale = mean_cost_units / mean;
    graph.reserveNode(in.sources + in.engines + 1);
    graph.reserveArc(in.pairs + in.segments);
    for (int64_t i = 0; i < in.sources + in.engines + 1; i++) graph.addNode();
    Graph::Node root = graph.nodeFromId(in.sources + in.engines);
    long long total = 0;
    for (int64_t s = 0; s < in.sources; s++) {
      supply[graph.nodeFromId(s)] = std::llround(in.supply[s] * units);
      total += supply[graph.nodeFromId(s)];
    }
    supply[root] = -total;
    for (int64_t k = 0; k < in.pairs; k++) {
      auto a = graph.addArc(graph.nodeFromId(in.tail[k]), graph.nodeFromId(in.sources + in.head[k]));
      cost[a] = std::llround(in.cost[k] * scale);
      capacity[a] = total;
    }
    for (int64_t i = 0; i < in.segments; i++) {
      auto a = graph.addArc(graph.nodeFromId(in.sources + in.segment_engine[i]), root);
      cost[a] = std::llround(in.slope[i] * scale);
      capacity[a] = (long long)std::ceil(in.width[i] * units);
    }
  }
};

template <class Algorithm>
std::vector<double> solve(const Network& n, int64_t pairs) {
  Algorithm algorithm(n.graph);
  algorithm.upperMap(n.capacity).costMap(n.cost).supplyMap(n.supply);
  if (algorithm.run() != Algorithm::OPTIMAL) fail("LEMON finds no optimum");
  std::vector<double> flow(pairs);
  for (int64_t k = 0; k < pairs; k++) flow[k] = algorithm.flow(n.graph.arcFromId(k)) / n.units;
  return flow;
}

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: lemon SETTING LIMIT RUNS");
  int64_t pairs;
  // The instance is dropped once it is in LEMON's form.
  auto network = [&] {
    Instance in = read_instance();
    pairs = in.pairs;
    return std::make_unique<Network>(in);
  }();
  int limit = std::atoi(argv[2]), runs = std::atoi(argv[3]);
  if (!std::strcmp(argv[1], "network-simplex"))
    run_and_write(limit, runs, [&] { return solve<lemon::NetworkSimplex<Graph, long long, long long>>(*network, pairs); });
  else if (!std::strcmp(argv[1], "cost-scaling"))
    run_and_write(limit, runs, [&] { return solve<lemon::CostScaling<Graph, long long, long long>>(*network, pairs); });
  else
    fail("SETTING must be network-simplex or cost-scaling");
}
