<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Reads the message and the code of an exception. A subclass may have assigned values of any type to both. */
final class ThrownText
{
    /** Returns the message, even if a subclass has assigned a value of another type, or a property hook throws. */
    public static function message(\Throwable $thrown): string
    {
        set_error_handler(static fn(): bool => true); // converting an array emits a warning
        try {
            return $thrown->getMessage();
        } catch (\Throwable) { // @phpstan-ignore catch.neverThrown (the message may be an object, or have a hook)
            return '(the message cannot be converted to a string)';
        } finally {
            restore_error_handler();
        }
    }

    /** Returns the code, or an enum's value or name; 0 for null, arrays and objects, or if a property hook throws. */
    public static function code(\Throwable $thrown): int|string
    {
        try {
            return self::scalar($thrown->getCode());
        } catch (\Throwable) { // the code may have a property hook
            return 0;
        }
    }

    private static function scalar(mixed $code): int|string
    {
        return match (true) {
            \is_int($code), \is_string($code) => $code,
            $code instanceof \BackedEnum => $code->value,
            $code instanceof \UnitEnum => $code->name,
            default => \is_scalar($code) ? (string) $code : 0,
        };
    }
}
