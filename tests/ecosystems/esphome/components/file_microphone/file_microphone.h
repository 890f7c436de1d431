/* A microphone for tests: samples of the file that FILE_MICROPHONE names, 32 ms
 * with each loop; the program ends with the file. */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "esphome/components/microphone/microphone.h"
#include "esphome/core/component.h"

namespace esphome::file_microphone
{

class FileMicrophone : public microphone::Microphone, public Component
{
  public:
    void setup() override
    {
        this->audio_stream_info_ = audio::AudioStreamInfo(16, 1, 16000);
        this->file_ = std::fopen(std::getenv("FILE_MICROPHONE"), "rb");
    }
    void start() override
    {
        this->state_ = microphone::STATE_RUNNING;
    }
    void stop() override
    {
        this->state_ = microphone::STATE_STOPPED;
    }
    void loop() override
    {
        std::vector<uint8_t> data(1024);

        if (this->state_ != microphone::STATE_RUNNING)
            return;
        data.resize(std::fread(data.data(), 1, data.size(), this->file_));
        if (data.empty())
            std::exit(0);
        this->data_callbacks_.call(data);
    }

  protected:
    std::FILE *file_{nullptr};
};

} // namespace esphome::file_microphone
