/* log.h: all levels on stdout. */
#pragma once

#include <cstdio>

#define LOGGED(level, tag, ...)                                                \
    (std::printf("%s %s: ", level, tag), std::printf(__VA_ARGS__),             \
     std::printf("\n"))
#define ESP_LOGE(tag, ...)      LOGGED("E", tag, __VA_ARGS__)
#define ESP_LOGW(tag, ...)      LOGGED("W", tag, __VA_ARGS__)
#define ESP_LOGD(tag, ...)      LOGGED("D", tag, __VA_ARGS__)
#define ESP_LOGCONFIG(tag, ...) LOGGED("C", tag, __VA_ARGS__)
