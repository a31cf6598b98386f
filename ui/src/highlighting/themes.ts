// The two themes of the page, in the form that the diff component looks them up in.
const loaders: Record<string, () => Promise<unknown>> = {
  "pierre-light": () => import("@pierre/theme/pierre-light"),
  "pierre-dark": () => import("@pierre/theme/pierre-dark"),
};

export const themes = {
  getTheme(name: string) {
    const load = loaders[name];
    return load && { name, load };
  },
};
