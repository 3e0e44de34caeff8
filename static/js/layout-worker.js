// Lays a graph out with dagre, away from the page's thread.

import { rankByDepth } from "./rank.js";

const EXACT = 200; // boxes: beyond this dagre's own ranking takes too long
const ORDERED = 1000; // boxes: beyond this crossings are no longer minimised

let dagre = null;

self.onmessage = async ({ data: { id, library, nodes, edges } }) => {
  dagre ??= await import(library);
  const graph = new dagre.Graph();
  const ranker = nodes.length > EXACT ? rankByDepth : "network-simplex";
  graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 26, marginx: 12, marginy: 12, ranker });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph, { disableOptimalOrderHeuristic: nodes.length > ORDERED });
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
