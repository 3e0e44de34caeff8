// Stand-ins for two steps of dagre, in linear time and without recursion: dagre's own take too
// long on a thousand boxes, and run out of stack on a chain of as many.

// Ranks: each node below its deepest input; a node without inputs stands right above what reads
// it first, so that edges stay short.
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

// Order within each rank: by the mean place of what a node reads, from the top down.
export function orderByInputs(graph) {
  const layers = [];
  for (const node of graph.nodes()) {
    const { rank } = graph.node(node);
    if (rank !== undefined) (layers[rank] ??= []).push(node);
  }
  for (const layer of layers.filter(Boolean)) {
    const wanted = new Map(layer.map((node, at) => [node, meanOrder(graph, node) ?? at]));
    layer.sort((one, other) => wanted.get(one) - wanted.get(other));
    layer.forEach((node, at) => { graph.node(node).order = at; });
  }
}

function meanOrder(graph, node) {
  const places = graph.predecessors(node).map((input) => graph.node(input).order ?? 0);
  return places.length ? places.reduce((sum, place) => sum + place, 0) / places.length : undefined;
}
