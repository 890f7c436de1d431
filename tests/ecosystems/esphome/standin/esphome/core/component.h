/* component.h: what a component takes of ESPHome's core. */
#pragma once

namespace esphome
{

namespace setup_priority
{
constexpr float AFTER_CONNECTION = 100.0f;
}

class Component
{
  public:
    virtual ~Component() = default;
    virtual void setup()
    {
    }
    virtual void loop()
    {
    }
    virtual void dump_config()
    {
    }
    virtual float get_setup_priority() const
    {
        return 0.0f;
    }
    bool is_ready() const
    {
        return !this->failed_;
    }
    bool is_failed() const
    {
        return this->failed_;
    }
    void mark_failed()
    {
        this->failed_ = true;
    }

  protected:
    bool failed_{false};
};

} // namespace esphome
