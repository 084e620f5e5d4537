<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Laravel\SerializableClosure\Exceptions\MissingSecretKeyException;
use Laravel\SerializableClosure\Serializers\Signed;

/** A closure as the library signs it, packed by {@see NativeClosure}. */
final class SignedClosure extends Signed
{
    /** @return array<mixed> */
    public function __serialize(): array
    {
        $signer = self::$signer ?? throw new MissingSecretKeyException();

        return $signer->sign(serialize(new NativeClosure($this->closure)));
    }
}
