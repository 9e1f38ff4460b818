// The codecs that KafkaJS knows by name only: a library for each is registered here.

import zstd from '@bokuweb/zstd-wasm'
import kafkajs from 'kafkajs'
import SnappyCodec from 'kafkajs-snappy'
import lz4 from 'lz4-napi'

const { CompressionCodecs, CompressionTypes } = kafkajs

/** Makes every codec usable. */
export async function register() {
  await zstd.init()
  CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async encoder => lz4.compressFrame(encoder.buffer),
    decompress: async bytes => lz4.decompressFrame(bytes),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async bytes => Buffer.from(zstd.decompress(bytes)),
  })
}

/** The number of a codec. */
export function codec(name) {
  const found = {
    none: CompressionTypes.None,
    gzip: CompressionTypes.GZIP,
    snappy: CompressionTypes.Snappy,
    lz4: CompressionTypes.LZ4,
    zstd: CompressionTypes.ZSTD,
  }[name]
  if (found === undefined) throw new Error(`codec ${name} is not known`)
  return found
}
