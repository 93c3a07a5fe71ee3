// How the deployment is called.

import { existsSync, readFileSync } from "node:fs";
import { parseArgs, parseEnv } from "node:util";
import { isKey } from "../../src/http/authentication.ts";
import { type Environment, readEnvironment } from "../environment.ts";

const USAGE = `usage: API_KEY=<key> npm run deploy:<environment> [-- --wait <seconds>]
   or: npm run deploy:<environment> -- --secrets-file <file with API_KEY=<key>[,<key>…]> [--wait <seconds>]
The first deployment needs the file, and creates the database: [--location <hint> | --jurisdiction <name>] says where.
The smoke test uses the last key; SMOKE_URL is the base URL where it is not the one that Wrangler prints. What is new
must answer within 90 s, or as --wait says.`;

export interface DeployArguments {
  environment: Environment;
  secrets?: {
    file: string;
    /** API_KEY as the file has it: one key, or several separated by commas. */
    keys: string;
  };
  /** One of the environment's keys, valid after the deployment. */
  key: string;
  /** Where the data shall live: flags of `d1 create`. */
  place: string[];
  /** Milliseconds. */
  wait: number;
  smokeUrl?: string;
}

/** Ends the process with 2 where the arguments are wrong. */
export function readArguments(): DeployArguments {
  try {
    return parse();
  } catch (failure) {
    console.error(`${(failure as Error).message}\n${USAGE}`);
    process.exit(2);
  }
}

function parse(): DeployArguments {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      "secrets-file": { type: "string" },
      location: { type: "string" },
      jurisdiction: { type: "string" },
      wait: { type: "string", default: "90" },
    },
  });
  const [name, ...rest] = positionals;
  if (!name || rest.length > 0) throw new Error("One environment must be named, and nothing else.");
  const { location, jurisdiction, wait, "secrets-file": file } = values;
  if (!/^\d+$/.test(wait)) throw new Error("--wait must be a number of seconds.");

  const keys = file === undefined ? process.env["API_KEY"] : keysIn(file);
  const where = file === undefined ? "API_KEY" : `API_KEY in ${file}`;
  if (!keys) throw new Error(`There is no ${where}.`);
  const entries = keys.split(",").map((entry) => entry.trim());
  const wrong = entries.flatMap((entry, index) => (isKey(entry) ? [] : [index + 1]));
  if (wrong.length > 0)
    throw new Error(`Of ${where}, entry ${wrong.join(", ")} can be no key (letters, digits and -._~+/).`);
  // An empty one is none: so a workflow passes on a variable that is not set.
  const smokeUrl = process.env["SMOKE_URL"]?.replace(/\/+$/, "");
  if (smokeUrl && !URL.canParse(smokeUrl)) throw new Error("SMOKE_URL must be a URL.");
  return {
    environment: readEnvironment(name),
    ...(file !== undefined && { secrets: { file, keys } }),
    key: entries.at(-1) ?? keys,
    place: Object.entries({ location, jurisdiction }).flatMap(([flag, value]) => (value ? [`--${flag}=${value}`] : [])),
    wait: Number(wait) * 1000,
    ...(smokeUrl && { smokeUrl }),
  };
}

/** API_KEY in a secrets file, which is JSON or of the form of .env. */
function keysIn(file: string): string | undefined {
  if (!existsSync(file)) throw new Error(`There is no file ${file}.`);
  const text = readFileSync(file, "utf8");
  if (!text.trimStart().startsWith("{")) return parseEnv(text)["API_KEY"];
  try {
    const secrets: NodeJS.Dict<string> = JSON.parse(text);
    return secrets["API_KEY"];
  } catch {
    // Not the parser's own words, which quote the file.
    throw new Error(`${file} is not valid JSON.`);
  }
}
