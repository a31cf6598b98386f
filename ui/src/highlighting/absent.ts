// Stands in for parts of the diff component that the page does not use.

function absent(): never {
  throw new Error("this part of the diff component is not included");
}

export const themes = {};
export const bundledLanguages = {};
export default themes;
export const createOnigurumaEngine = absent;
export const codeToTokens = absent;
export const isSupportedLanguage = absent;
export class LiveTokenizer {
  constructor() {
    absent();
  }
}
