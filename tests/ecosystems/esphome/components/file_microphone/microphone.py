"""A microphone for tests: samples of the file that FILE_MICROPHONE names."""

import esphome.codegen as cg
import esphome.config_validation as cv
from esphome.components import audio, microphone
from esphome.const import CONF_ID

file_microphone_ns = cg.esphome_ns.namespace("file_microphone")
FileMicrophone = file_microphone_ns.class_(
    "FileMicrophone", microphone.Microphone, cg.Component
)


def _limits(config):
    audio.set_stream_limits(
        min_bits_per_sample=16,
        max_bits_per_sample=16,
        min_channels=1,
        max_channels=1,
        min_sample_rate=16000,
        max_sample_rate=16000,
    )(config)
    return config


CONFIG_SCHEMA = cv.All(
    microphone.MICROPHONE_SCHEMA.extend(
        {cv.GenerateID(): cv.declare_id(FileMicrophone)}
    ).extend(cv.COMPONENT_SCHEMA),
    _limits,
)


async def to_code(config):
    var = cg.new_Pvariable(config[CONF_ID])
    await cg.register_component(var, config)
    await microphone.register_microphone(var, config)
