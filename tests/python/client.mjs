// client.mjs SDK COMMAND ARGS...: the official client of the Model Context Protocol (npm) as an agent would use it. Standard input
// holds a JSON list of steps, [{tool|resource|list: ..., arguments}]; a line of JSON is printed for each.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';

const [sdk, command, ...args] = process.argv.slice(2);
const load = createRequire(sdk + '/');
const {Client} = load('@modelcontextprotocol/sdk/client/index.js');
const {StdioClientTransport} = load('@modelcontextprotocol/sdk/client/stdio.js');

const client = new Client({name: 'test', version: '1'});
await client.connect(new StdioClientTransport({command, args, env: process.env}));
const steps = JSON.parse(readFileSync(0, 'utf8'));
for (const {tool, resource, list, arguments: given} of steps) {
  let said;
  try {
    if (list === 'server') said = {...client.getServerVersion(), instructions: client.getInstructions()};
    else if (list === 'ping') said = await client.ping();
    else if (list === 'resources') said = await client.listResources();
    else if (list) said = await client.listTools();
    else said = resource ? await client.readResource({uri: resource}) : await client.callTool({name: tool, arguments: given});
  } catch (error) {
    said = {thrown: String(error)};
  }
  process.stdout.write(JSON.stringify(said) + '\n');
}
await client.close();
