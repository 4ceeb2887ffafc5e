// Serves webhooks with Probot and a handler that does nothing. It prints its address and ends when its input does.
// SECRET is the webhook secret; PROBOT is the directory of Probot's modules.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.PROBOT, "package.json"));
const { Probot, createNodeMiddleware } = await import(pathToFileURL(require.resolve("probot")).href);

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048, privateKeyEncoding: { type: "pkcs1", format: "pem" }, publicKeyEncoding: { type: "pkcs1", format: "pem" } });
const probot = new Probot({ appId: 1, privateKey, secret: process.env.SECRET, logLevel: "fatal" });
const middleware = await createNodeMiddleware((app) => app.on("issue_comment", () => {}), { probot, webhooksPath: "/api/github/hook" });

const server = createServer(middleware);
server.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit()).resume();
