// Fills a workspace with a session that looks like real work, for the screens in the documentation.

import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Place } from "../test/browser/place.ts";

const SESSION = "7c1e40b2-8f5a-4c1d-9b57-2f6f0f1f0c11";

const cart = (more: string) => `import { priceOf } from "./prices";

export interface Item {
  sku: string;
  count: number;
}

export class Cart {
  private items: Item[] = [];

  add(sku: string, count = 1): void {
    const known = this.items.find((item) => item.sku === sku);
    if (known) known.count += count;
    else this.items.push({ sku, count });
  }
${more}}
`;

const total = `
  total(): number {
    let sum = 0;
    for (const item of this.items) {
      sum += priceOf(item.sku) * item.count;
    }
    return sum;
  }
`;

const discounted = `
  /** The sum of all items, in cents, after the discount. */
  total(discount = 0): number {
    const sum = this.items.reduce((sum, item) => sum + priceOf(item.sku) * item.count, 0);
    return Math.round(sum * (1 - discount));
  }

  get isEmpty(): boolean {
    return this.items.length === 0;
  }
`;

const test = (name: string, body: string) => `  it("${name}", () => {\n${body}  });\n`;
const tests = (...parts: string[]) =>
  `import { describe, expect, it } from "vitest";\nimport { Cart } from "./cart";\n\ndescribe("cart", () => {\n${parts.join("\n")}});\n`;

export function fillDemo(place: Place): void {
  const transcript = path.join(place.home, `transcript-${SESSION}.jsonl`);
  const said = (role: string, text: string) =>
    JSON.stringify({ type: role, message: { role, content: text } });
  place.write("package.json", '{\n  "name": "shop",\n  "type": "module"\n}\n');
  place.write("README.md", "# Shop\n\nA small shop.\n");
  place.write(
    "src/prices.ts",
    "export const priceOf = (sku: string): number => (sku === 'tea' ? 450 : 1200);\n",
  );
  place.write("src/cart.ts", cart(""));
  place.run(["save", "-m", "before the agent"]);
  place.hook("SessionStart", { source: "startup" }, SESSION);
  writeFileSync(
    transcript,
    `${said("user", "hello")}\n${said("assistant", "Hello! What shall we build?")}\n`,
  );
  place.prompt(
    "Add a total to the cart, with tests",
    {
      "src/cart.ts": cart(total),
      "src/cart.test.ts": tests(
        test(
          "adds up",
          '    const cart = new Cart();\n    cart.add("tea", 2);\n    expect(cart.total()).toBe(900);\n',
        ),
      ),
    },
    SESSION,
  );
  writeFileSync(
    transcript,
    `${said("user", "Add a total to the cart, with tests")}\n${said("assistant", "`Cart.total()` adds up the prices, and a test covers it.")}\n`,
    { flag: "a" },
  );
  place.prompt(
    "Support discounts, and use reduce. Prices stay in cents.",
    {
      "src/cart.ts": cart(discounted),
      "src/cart.test.ts": tests(
        test(
          "adds up",
          '    const cart = new Cart();\n    cart.add("tea", 2);\n    expect(cart.total()).toBe(900);\n',
        ),
        test(
          "takes a discount off",
          '    const cart = new Cart();\n    cart.add("tea", 2);\n    expect(cart.total(0.1)).toBe(810);\n',
        ),
      ),
      "README.md": "# Shop\n\nA small shop. Prices are in cents, and `total` takes a discount.\n",
    },
    SESSION,
  );
}
