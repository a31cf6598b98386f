// Starts the page.

import { render } from "preact";
import { App } from "./app.tsx";
import { loadDiffs } from "./diff-view.tsx";

const root = document.getElementById("app");
if (root) render(<App />, root);
// The differences are wanted in any case, so their code is loaded beside the first answers.
void loadDiffs();
