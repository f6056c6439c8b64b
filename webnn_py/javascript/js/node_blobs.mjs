// Hooks of Node's loader, in its thread: modules of `blob:` URLs, by the blobs that the program's thread sends.
import {receiveMessageOnPort} from 'node:worker_threads';

const blobs = new Map();
let port;

export function initialize(given) {
  port = given;
}

export async function load(url, context, next) {
  for (let received = receiveMessageOnPort(port); received !== undefined; received = receiveMessageOnPort(port)) {
    blobs.set(received.message.url, received.message.blob);
  }
  const blob = blobs.get(url);
  return blob === undefined ? next(url, context) : {format: 'module', source: await blob.text(), shortCircuit: true};
}
