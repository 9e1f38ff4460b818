// What the records of a test are, and how one that was read is printed.

import { createHash } from 'node:crypto'

const FIRST_TIMESTAMP = 1_700_000_000_000
const BIG_BYTES = 900_000
const SHOWN_BYTES_MAX = 256

/** Record i of a seed, the same in every client's language. */
export function record(seed, i, partitions) {
  const key = i % 7 === 3 ? null : `k-${seed}-${i}`
  const value = key !== null && i % 11 === 5 ? null : `v-${seed}-${i}-${'x'.repeat((i * 37) % 300)}`
  const headers = [
    {},
    { h1: ['a', 'b'] },
    { empty: '', bin: Buffer.from([0x00, 0xff, 0x80]) },
  ][i % 3]
  return { key, value, headers, partition: i % partitions, timestamp: `${FIRST_TIMESTAMP + i}` }
}

/** The record that nearly fills a request. */
export function bigRecord(i, partitions) {
  return {
    key: 'big',
    value: 'y'.repeat(BIG_BYTES),
    partition: i % partitions,
    timestamp: `${FIRST_TIMESTAMP + i}`,
  }
}

/** One record as a line of the output tells it. */
export function shown(partition, message) {
  const headers = Object.entries(message.headers ?? {}).flatMap(([name, values]) =>
    [values].flat().map(value => [name, hex(value)])
  )
  const line = {
    p: partition,
    o: Number(message.offset),
    t: Number(message.timestamp),
    k: hex(message.key),
    h: headers,
  }
  if (message.value !== null && message.value.length > SHOWN_BYTES_MAX) {
    line.vs = createHash('sha256').update(message.value).digest('hex')
  } else {
    line.v = hex(message.value)
  }
  return line
}

function hex(bytes) {
  return bytes === null ? null : Buffer.from(bytes).toString('hex')
}
