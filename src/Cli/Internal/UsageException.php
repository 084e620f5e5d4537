<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** Invalid options, arguments or input. The message is one line that names the cause. The exit status is 255. */
final class UsageException extends \RuntimeException implements SpindleException
{
    public function __construct(string $message)
    {
        parent::__construct(TerminalText::escape($message));
    }

    public static function option(string $option, string $value, string $allowed): self
    {
        return new self("option {$option}: '" . self::withoutPassword($value) . "' is not allowed; give {$allowed}");
    }

    /** Masks user name and password of an address, in case the user gave an address as the wrong argument. */
    public static function withoutPassword(#[\SensitiveParameter] string $text): string
    {
        return (string) preg_replace('~(?<=://)\S*@~', '***@', $text);
    }
}
