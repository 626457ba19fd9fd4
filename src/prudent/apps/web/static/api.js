// Questions to the server.  A new question on a channel gives up the old one, which stops its solve there.

import { modelQuery } from "./state.js";

const channels = new Map();

export function address(task, values = {}) {
  const query = modelQuery();
  for (const [name, value] of Object.entries(values)) if (value !== null && value !== undefined) query.set(name, value);
  return `api/${task}?${query}`;
}

export function giveUp(channel) {
  channels.get(channel)?.abort();
  channels.delete(channel);
}

const TRIES = 60; // of a question that finds all workers busy, about one a second

// Resolves to the answer, or to null when the question was given up; throws an Error with the server's message.
export function ask(channel, task, values) { return send(channel, address(task, values)); }

export async function send(channel, where, options = {}) {
  giveUp(channel);
  const control = new AbortController();
  channels.set(channel, control);
  try {
    return await patiently(where, { ...options, signal: control.signal });
  } catch (error) {
    if (control.signal.aborted) return null;
    throw error;
  } finally {
    if (channels.get(channel) === control) channels.delete(channel);
  }
}

export async function patiently(where, options) {
  for (let tries = 1; ; tries += 1) {
    let answer;
    try {
      answer = await fetch(where, options);
    } catch (error) {
      if (options?.signal?.aborted) throw error;
      throw new Error("The server does not answer: is `prudent serve` still running?");
    }
    if (answer.status === 503 && tries < TRIES) {
      await later(1000 * Number(answer.headers.get("Retry-After") ?? 1), options?.signal);
      continue;
    }
    const content = await answer.json();
    if (!answer.ok) {
      const problem = new Error(content.error);
      problem.problems = content.problems ?? [content.error];
      throw problem;
    }
    return content;
  }
}

export function later(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(new Error("given up")); });
  });
}
