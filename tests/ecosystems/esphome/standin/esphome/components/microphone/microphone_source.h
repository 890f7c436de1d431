/* microphone_source.h: hands on what it is given. */
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace esphome::microphone
{

class MicrophoneSource
{
  public:
    template <typename F> void add_data_callback(F &&callback)
    {
        this->callback_ = callback;
    }
    void start()
    {
        this->running = true;
    }
    void stop()
    {
        this->running = false;
    }
    void give(const std::vector<uint8_t> &data)
    {
        this->callback_(data);
    }

    bool running{false};

  protected:
    std::function<void(const std::vector<uint8_t> &)> callback_;
};

} // namespace esphome::microphone
