// Runs one scenario of the client matrix with KafkaJS: `node program.mjs BOOTSTRAP SCENARIO key=value...`
//
// It prints JSON lines; an exit code other than 0 says that the scenario failed.

import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import kafkajs from 'kafkajs'

import { codec, register } from './codecs.mjs'
import { range } from './range.mjs'
import { bigRecord, record, shown } from './records.mjs'

const { Kafka, PartitionAssigners, logLevel } = kafkajs
const [bootstrap, scenario, ...words] = process.argv.slice(2)
const given = Object.fromEntries(words.map(word => word.split(/=(.*)/s)))

const text = (name, otherwise = '') => given[name] ?? otherwise
const number = (name, otherwise = 0) => Number(given[name] ?? otherwise)
const print = line => writeSync(1, `${JSON.stringify(line)}\n`)

/** A client; `watch` sees everything that KafkaJS logs. */
function connect(watch = () => {}) {
  const logCreator = () => entry => {
    watch(entry)
    if (entry.level <= logLevel.WARN) console.error(entry.label, entry.log.message)
  }
  return new Kafka({
    clientId: text('id', 'kafkajs'),
    brokers: [bootstrap],
    logLevel: logLevel.DEBUG,
    logCreator,
    // A broker that comes back within a session must find its members patient.
    retry: { initialRetryTime: 200, maxRetryTime: 500, retries: 40 },
  })
}

/** Writes the seed's records and waits for every acknowledgement. */
async function produce() {
  const producer = connect().producer({ createPartitioner: () => ({ message }) => message.partition })
  await producer.connect()
  const [count, partitions] = [number('count'), number('partitions', 1)]
  const messages = Array.from({ length: count }, (_, i) => record(text('seed', '0'), i, partitions))
  if (number('big')) messages.push(bigRecord(count, partitions))
  await producer.send({ topic: text('topic'), acks: -1, compression: codec(text('codec', 'none')), messages })
  await producer.disconnect()
  print({ produced: messages.length })
}

/** KafkaJS reads in groups only. */
async function read() {
  print({ cannot: 'KafkaJS reads in groups only' })
}

/** Reads as the only member of a group, commits, leaves, and asks the broker what is committed. */
async function group() {
  const [topic, groupId, expected] = [text('topic'), text('group'), number('expect')]
  const kafka = connect()
  const consumer = kafka.consumer({ groupId, partitionAssigners: [PartitionAssigners.roundRobin] })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const ends = new Map()
  let seen = 0
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${seen} of ${expected} records came`)), number('timeout', 60) * 1000).unref()
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    const eachMessage = async ({ partition, message }) => {
      print(shown(partition, message))
      ends.set(partition, String(Number(message.offset) + 1))
      seen += 1
      if (seen === expected) resolve()
    }
    consumer.run({ autoCommit: false, eachMessage }).catch(reject)
  })
  await consumer.commitOffsets([...ends].map(([partition, offset]) => ({ topic, partition, offset })))
  await consumer.disconnect()
  const admin = kafka.admin()
  await admin.connect()
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
  await admin.disconnect()
  print({ committed: Object.fromEntries(partitions.map(({ partition, offset }) => [partition, Number(offset)])) })
}

/** A member of a group whose others come and go: tells what it is given, reads and commits. */
async function churn() {
  if (text('strategy', 'range') === 'cooperative') {
    print({ cannot: 'KafkaJS has no cooperative assigner' })
    return
  }
  const topic = text('topic')
  // No event of KafkaJS names the generation of a new assignment; its log of the answer that brings it does.
  let generation = -1
  const kafka = connect(({ log }) => {
    if (log.message.startsWith('Response JoinGroup') && log.data) generation = log.data.generationId
  })
  const consumer = kafka.consumer({
    groupId: text('group'),
    partitionAssigners: [range],
    sessionTimeout: Number(text('session_ms', '6000')),
    rebalanceTimeout: 10_000,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 200,
  })
  let owned = null
  const revoke = () => {
    if (owned !== null) print({ revoked: owned })
    owned = null
  }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    revoke()
    owned = payload.memberAssignment[topic] ?? []
    print({ assigned: owned, gen: generation, member: payload.memberId })
  })
  consumer.on(consumer.events.REBALANCING, revoke)
  consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => {
    const offsets = payload.topics.flatMap(({ partitions }) => partitions)
    print({
      commit: Object.fromEntries(offsets.map(({ partition, offset }) => [partition, Number(offset)])),
      gen: payload.groupGenerationId,
      member: payload.memberId,
    })
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const eachBatch = async ({ batch, isRunning, isStale }) => {
    if (!isRunning() || isStale()) return
    for (const { offset, value } of batch.messages) {
      print({ r: [batch.partition, Number(offset), value === null ? null : value.toString()] })
    }
    const offset = String(Number(batch.lastOffset()) + 1)
    try {
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset }])
    } catch (error) {
      print({ commit_failed: error.message, gen: generation })
      throw error
    }
  }
  await consumer.run({ autoCommit: false, eachBatch })
  const terminated = new Promise(resolve => process.once('SIGTERM', resolve))
  await Promise.race([terminated, sleep(number('seconds', 20) * 1000)])
  await consumer.disconnect()
}

const scenarios = { produce, read, group, churn }
try {
  if (!Object.hasOwn(scenarios, scenario)) throw new Error(`${scenario} is not a scenario`)
  await register()
  await scenarios[scenario]()
  process.exit(0)
} catch (error) {
  console.error(error)
  process.exit(1)
}
