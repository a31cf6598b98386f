// Takes the screens of the documentation: node scripts/screens.ts DIRECTORY

import path from "node:path";
import { closeBrowser, open, Place } from "../test/browser/place.ts";
import { fillDemo } from "./demo-place.ts";

const directory = process.argv[2] ?? "../docs/images";
const place = new Place();
try {
  fillDemo(place);
  const server = await place.serve();
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, close } = await open(server, { colorScheme, viewport: { width: 1400, height: 820 } });
    await page.locator("diffs-container").first().waitFor();
    await page.locator("[data-connection=live]").waitFor();
    await page.screenshot({ path: path.join(directory, `timeline-${colorScheme}.png`) });
    await close();
  }
  await server.end();
} finally {
  await closeBrowser();
  place.remove();
}
