// What the service tells of its settings in its document: limits, and what is switched off.
import { ask } from "./http";

export interface Ceilings {
  maxDatasources: number;
  maxTablesPerDatasource: number;
  maxFieldsPerTable: number;
}

interface Document {
  paths: Record<string, { get?: { parameters?: { name: string; schema: { maximum?: number } }[]; responses?: Record<string, unknown> } }>;
  components: { schemas: { LimitsRequest?: { properties: Record<string, { anyOf?: { maximum?: number }[] }> } } };
}

const USUAL: Ceilings = { maxDatasources: 10, maxTablesPerDatasource: 20, maxFieldsPerTable: 50 };

const document = (signal?: AbortSignal) => ask<Document>("GET", "openapi.json", signal ? { signal } : {});

/** How many items a page of a list may have. */
export async function mostItems(signal?: AbortSignal): Promise<number> {
  const { paths } = await document(signal);
  const limit = paths["/v1/fetcher"]?.get?.parameters?.find((each) => each.name === "limit");
  return limit?.schema.maximum ?? 10;
}

export async function ceilings(signal: AbortSignal): Promise<Ceilings> {
  const { components } = await document(signal);
  const told = components.schemas.LimitsRequest?.properties ?? {};
  const most = (name: keyof Ceilings) =>
    told[name]?.anyOf?.find((each) => each.maximum !== undefined)?.maximum ?? USUAL[name];
  return {
    maxDatasources: most("maxDatasources"),
    maxTablesPerDatasource: most("maxTablesPerDatasource"),
    maxFieldsPerTable: most("maxFieldsPerTable"),
  };
}

let previews: Promise<boolean> | undefined;

/** Whether the service shows rows of results to anybody. It is told at its start, so asked for once. */
export function showsRows(): Promise<boolean> {
  previews ??= document().then(
    ({ paths }) => "200" in (paths["/v1/fetcher/{id}/result/preview"]?.get?.responses ?? { "200": "" }),
    () => {
      previews = undefined;
      return true;
    },
  );
  return previews;
}
