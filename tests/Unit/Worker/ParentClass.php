<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Returns the called class in different ways. */
class ParentClass
{
    final public function __construct() {}

    public static function called(): string
    {
        return static::class;
    }

    public static function protectedCallable(): \Closure
    {
        return self::protectedCalled(...);
    }

    protected static function protectedCalled(): string
    {
        return static::class;
    }

    public static function privateCallable(): \Closure
    {
        return self::privateCalled(...);
    }

    private static function privateCalled(): string
    {
        return static::class;
    }

    public static function own(): \Closure
    {
        return static fn(): string => self::class;
    }

    public static function late(): \Closure
    {
        return static fn(): string => static::class;
    }

    public static function making(): \Closure
    {
        return static fn(): object => new static();
    }

    public static function asking(): \Closure
    {
        return static fn(): string => \get_called_class();
    }

    public static function plain(): string
    {
        return self::class . self::counted(2);
    }

    public static function forwarding(): \Closure
    {
        return static fn(): string => self::called();
    }

    public static function notForwarding(): \Closure
    {
        return static fn(): array => [self::plain(), ParentClass::called(), self::call([self::class, 'called'])];
    }

    public function forwardingFromMethod(): \Closure
    {
        return fn(): string => self::indirectly();
    }

    /** @return array<string, \Closure> closures that call {@see called()}, by the beginning of their callables */
    public static function callingByText(): array
    {
        $method = 'called';

        return [
            'self::called' => static fn(): mixed => self::call('self::called'),
            'Static::called' => static fn(): mixed => self::call('Static::called'),
            'parent::called' => static fn(): mixed => self::call([self::class, 'parent::called']),
            'self::' => static fn(): mixed => self::call("self::{$method}"),
        ];
    }

    public static function callingIndirectly(): \Closure
    {
        return static fn(): mixed => self::byText();
    }

    public static function byText(): mixed
    {
        return self::call('self::called');
    }

    private static function call(mixed $callable): mixed
    {
        return \is_callable($callable) ? $callable() : null;
    }

    public static function indirectly(): string
    {
        return self::called();
    }

    /** Calls {@see pong()}, which calls this method, and also uses `static` itself. */
    public static function ping(int $number = 0): string
    {
        return $number > 0 ? self::pong($number) : static::class;
    }

    public static function pong(int $number = 1): string
    {
        return self::ping($number - 1);
    }

    public static function pinging(): \Closure
    {
        return static fn(): string => self::ping();
    }

    public static function ponging(): \Closure
    {
        return static fn(): string => self::pong();
    }

    private static function counted(int $number): int
    {
        return $number > 0 ? self::counted($number - 1) : 0;
    }

    public function lately(): \Closure
    {
        return fn(): string => static::class;
    }
}
