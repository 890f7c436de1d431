"""The names on the boxes of boards that pybuild does not have, and the board that is
nearest: the same family of chips, else the same core.

Knows names only; nothing is built for another board than the one that was named.
"""

from __future__ import annotations

import re

# the start of a name without its punctuation, and the nearest board; the first counts
_NEAREST = (
    (r"(nucleo|stm32)?(f0|g0|l0|c0|u0)", "microbit"),
    (r"(nucleo|stm32)?(f1|f2|l1)|bluepill", "stm32vldiscovery"),
    (r"(nucleo|stm32)?(f3|f4)|blackpill", "netduinoplus2"),
    (r"(nucleo|stm32)?f7", "stm32f746g-disco"),
    (r"stm32h747|portenta|gigar1|arduinogiga|nicla", "stm32h747i-disco"),
    (r"(nucleo|stm32)?h7", "nucleo-h743zi"),
    (r"(nucleo|stm32)?(l4|g4|wb|wl)|disco(l4|l475)|biotl4", "nucleo-l4r5zi"),
    (r"(nucleo|stm32)?(l5|u5|h5)|bu585|biotu5", "b-u585i-iot02a"),
    (r"(nucleo|stm32)?(n6)", "mps3-an547"),
    (r"esp32s3|xiaoesp32s3|m5stack(cores3|atoms3)", "esp32s3-devkitc"),
    (r"esp32c6|esp32h2|xiaoesp32c6", "esp32c6-devkitc"),
    (r"esp32(c2|c3)|xiaoesp32c3", "esp32c3-devkitm"),
    (r"esp32|m5stack|ttgo|lolin32", "esp32-devkitc"),
    (r"esp8266|nodemcu|wemos|d1mini|esp12", "esp8266-nodemcu"),
    (r"nano33|arduinonano33", "nano-33-ble"),
    (r"nrf52|microbitv2|xiaoble|xiaonrf|featherno?rf|thingy52", "nrf52840-dk"),
    (r"nrf(53|54|91)|thingy(53|91)", "b-u585i-iot02a"),
    (r"nrf51|microbit", "microbit"),
    (r"(raspberrypi|rpi)?pico2w?riscv|rp2350riscv|hazard3", "pico2-riscv"),
    (r"(raspberrypi|rpi)?pico2|rp235|xiaorp2350", "pico2"),
    (r"(raspberrypi|rpi)?pico|rp2040|xiaorp2040|featherrp2040", "pico"),
    (r"samd21|(arduino)?(zero|mkr)|featherm0|xiaosamd21", "pico"),
    (r"samd51|featherm4|teensy3|unor4|arduinounor4|ra4|ra6m[12]|max326", "nrf52840-dk"),
    (r"teensy4|imxrt|mimxrt|lpc55|kinetisk8", "nucleo-h743zi"),
    (r"(ek)?ra8", "ek-ra8d1"),
    (r"(ensemble|alif|grove?visionai|himax|we2)", "ensemble-e7-devkit"),
    (r"apollo|redboardartemis|sparkfunedge", "apollo4p-evb"),
    (r"(arduino)?(uno|nano|mega|leonardo|promini)|atmega", "arduino-mega2560"),
    (r"ch32v0", "ch32v003-evt"),
    (r"ch32v", "ch32v203-evt"),
    (r"gd32vf|longan", "longan-nano"),
    (r"hifive|fe310|redv", "sifive-e"),
)


def nearest_board(name: str) -> str:
    """The board of pybuild that is like the one of this name; "" if none is known."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    found = (board for start, board in _NEAREST if re.match(start, plain))
    return next(found, "")
