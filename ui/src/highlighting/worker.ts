// Colours code, so that a long file does not hold up the page.
import "@pierre/diffs/worker/worker.js";
