// The assigner "range", which KafkaJS lacks: with it a group can mix KafkaJS and other clients.

import kafkajs from 'kafkajs'

const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol
const VERSION = 0

/** Each member in the order of the ids gets a run of each topic's partitions; the first ones get one more if it must be. */
export const range = ({ cluster }) => ({
  name: 'range',
  version: VERSION,
  protocol: ({ topics }) => ({
    name: 'range',
    metadata: MemberMetadata.encode({ version: VERSION, topics }),
  }),
  assign: async ({ members, topics }) => {
    const ids = members.map(({ memberId }) => memberId).sort()
    const assignments = ids.map(() => ({}))
    for (const topic of topics) {
      const partitions = cluster
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => partitionId)
        .sort((a, b) => a - b)
      let next = 0
      ids.forEach((_, at) => {
        const share = Math.floor(partitions.length / ids.length) + (at < partitions.length % ids.length ? 1 : 0)
        assignments[at][topic] = partitions.slice(next, next + share)
        next += share
      })
    }
    return ids.map((memberId, at) => ({
      memberId,
      memberAssignment: MemberAssignment.encode({ version: VERSION, assignment: assignments[at] }),
    }))
  },
})
