// Lays a graph out with dagre, away from the page's thread.

import { orderByInputs, rankByDepth } from "./rank.js";

const OWN_RANKS = 200; // boxes: beyond this dagre's own ranking takes too long
const OWN_ORDER = 600; // boxes: beyond this its ordering does, or runs out of stack

let dagre = null;

self.onmessage = async ({ data: { id, library, nodes, edges } }) => {
  dagre ??= await import(library);
  const graph = new dagre.Graph();
  graph.setGraph({
    ...{ rankdir: "TB", nodesep: 14, ranksep: 26, marginx: 12, marginy: 12 },
    ...(nodes.length > OWN_RANKS && { ranker: rankByDepth, acyclicer: "greedy" }),
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph, nodes.length > OWN_ORDER ? { customOrder: orderByInputs } : {});
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
