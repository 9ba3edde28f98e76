// The limits of one job, which the service tells in its document.
import { ask } from "./http";

export interface Ceilings {
  maxDatasources: number;
  maxTablesPerDatasource: number;
  maxFieldsPerTable: number;
}

interface Document {
  components: { schemas: { LimitsRequest?: { properties: Record<string, { anyOf?: { maximum?: number }[] }> } } };
}

const USUAL: Ceilings = { maxDatasources: 10, maxTablesPerDatasource: 20, maxFieldsPerTable: 50 };

export async function ceilings(signal: AbortSignal): Promise<Ceilings> {
  const document = await ask<Document>("GET", "openapi.json", { signal });
  const told = document.components.schemas.LimitsRequest?.properties ?? {};
  const most = (name: keyof Ceilings) =>
    told[name]?.anyOf?.find((each) => each.maximum !== undefined)?.maximum ?? USUAL[name];
  return {
    maxDatasources: most("maxDatasources"),
    maxTablesPerDatasource: most("maxTablesPerDatasource"),
    maxFieldsPerTable: most("maxFieldsPerTable"),
  };
}
