// Lays a graph out with dagre, away from the page's thread.

let dagre = null;

self.onmessage = async ({ data: { id, library, nodes, edges } }) => {
  dagre ??= await import(library);
  const graph = new dagre.Graph({ multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 26, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  self.postMessage({
    id,
    nodes: nodes.map((node) => {
      const { x, y } = graph.node(node.id);
      return { id: node.id, x: x - node.width / 2, y: y - node.height / 2 };
    }),
    edges: edges.map(([from, to]) => ({ from, to, points: graph.edge(from, to).points })),
    width: graph.graph().width,
    height: graph.graph().height,
  });
};
