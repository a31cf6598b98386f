// Requests to the server. A request that writes is never repeated by itself.

/** A request that the server refused. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;

  constructor(status: number, code: string, message: string, hint: string | null) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** The server could not be reached. */
export class Unreachable extends Error {}

type Parameters = Record<string, string | number | null | undefined>;

let workspace: string | null = null;

/** Chooses the workspace that all further requests are about. */
export function useWorkspaceStore(store: string | null): void {
  workspace = store;
}

/** Returns the address of a request. */
export function address(name: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
  }
  if (workspace !== null) query.set("workspace", workspace);
  const text = query.toString();
  return `/api/${name}${text === "" ? "" : `?${text}`}`;
}

export async function read<T>(name: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  return answer<T>(await send(address(name, parameters), signal ? { signal } : {}));
}

/** Reads the text of a file. */
export async function text(name: string, parameters: Parameters, signal?: AbortSignal): Promise<string> {
  const response = await send(address(name, parameters), signal ? { signal } : {});
  if (!response.ok) await answer(response);
  return response.text();
}

export async function write<T>(name: string, body: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return answer<T>(await send(address(name), { method: "POST", headers, body: JSON.stringify(body) }));
}

async function send(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("the server does not answer");
  }
}

async function answer<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const body = await response.json().catch(() => null);
  const { code = "io", message = `the server answered ${response.status}`, hint = null } = body?.error ?? {};
  throw new Refused(response.status, code, message, hint);
}

/** Returns an error as a sentence with its hint. */
export function sentence(error: unknown): string {
  if (error instanceof Refused) return error.hint ? `${error.message}; ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
