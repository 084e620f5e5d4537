<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * Cache of salted passwords. The logins of a pool share one cache, because salting is most of the work of a login.
 *
 * @see https://www.rfc-editor.org/rfc/rfc5802#section-5.1
 */
final class SaltedPasswords
{
    /** Maximum number of entries. Each user of a server needs one entry. A full cache is emptied before an addition. */
    private const MAX_ENTRIES = 8;

    /** The entries, hidden from var_export() and similar functions. */
    private \SensitiveParameterValue $kept;

    public function __construct()
    {
        $this->kept = new \SensitiveParameterValue(new \ArrayObject());
    }

    /** Returns the object that computes the salted password, or has computed it: {@see SaltedPassword::compute()}. */
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
