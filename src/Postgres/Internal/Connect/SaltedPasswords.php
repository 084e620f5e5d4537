<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * Cache of recently computed salted passwords. The sessions of a pool share one, which saves most of a login's work.
 *
 * @see https://www.rfc-editor.org/rfc/rfc5802#section-5.1
 */
final class SaltedPasswords
{
    /** Entries kept. A server has one salt for each user. */
    private const MAX_ENTRIES = 8;

    /** Hidden from var_export() and similar, like the password itself. */
    private \SensitiveParameterValue $kept;

    public function __construct()
    {
        $this->kept = new \SensitiveParameterValue(new \ArrayObject());
    }

    public function of(#[\SensitiveParameter] string $password, string $salt, int $iterations): SaltedPassword
    {
        /** @var \ArrayObject<string, SaltedPassword> $kept */
        $kept = $this->kept->getValue();
        $key = hash('sha256', $password, true) . "{$iterations}:{$salt}";
        $known = $kept[$key] ?? null;
        if ($known === null) {
            if (\count($kept) >= self::MAX_ENTRIES) {
                $kept->exchangeArray([]);
            }
            $kept[$key] = $known = new SaltedPassword($password, $salt, $iterations);
        }

        return $known;
    }
}
