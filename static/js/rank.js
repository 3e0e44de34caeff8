// A ranker for dagre in linear time: each node below its deepest input; a node without inputs
// stands right above what reads it first, so that edges stay short.

export function rankByDepth(graph) {
  const waiting = new Map(graph.nodes().map((node) => [node, graph.inEdges(node).length]));
  const order = graph.nodes().filter((node) => waiting.get(node) === 0);
  const rank = new Map(order.map((node) => [node, 0]));
  for (const node of order) { // grows while it is walked
    for (const edge of graph.outEdges(node)) {
      const below = rank.get(node) + graph.edge(edge).minlen;
      rank.set(edge.w, Math.max(rank.get(edge.w) ?? 0, below));
      waiting.set(edge.w, waiting.get(edge.w) - 1);
      if (waiting.get(edge.w) === 0) order.push(edge.w);
    }
  }
  for (const node of graph.nodes()) {
    const out = graph.inEdges(node).length ? [] : graph.outEdges(node);
    const first = Math.min(...out.map((edge) => rank.get(edge.w) - graph.edge(edge).minlen));
    graph.node(node).rank = out.length ? first : rank.get(node);
  }
}
