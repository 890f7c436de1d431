/* automation.h: triggers with one function, actions that are called by hand. */
#pragma once

#include <functional>

namespace esphome
{

template <typename... Ts> class Trigger
{
  public:
    void trigger(const Ts &...x)
    {
        if (this->then)
            this->then(x...);
    }
    std::function<void(const Ts &...)> then;
};

template <typename T> class Parented
{
  public:
    void set_parent(T *parent)
    {
        this->parent_ = parent;
    }

  protected:
    T *parent_{nullptr};
};

template <typename... Ts> class Action
{
  public:
    virtual ~Action() = default;
    virtual void play(const Ts &...x) = 0;
};

template <typename... Ts> class Condition
{
  public:
    virtual ~Condition() = default;
    virtual bool check(const Ts &...x) = 0;
};

} // namespace esphome
