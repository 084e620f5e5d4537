<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;

final readonly class LoginCredentials
{
    /**
     * @param string $advice end of the message about a missing password: why the password file was ignored
     * @param list<AuthenticationMethod> $methods methods that the server may request
     * @param string|null $certificateHash channel binding data: {@see Tls::channelBindingHash()}
     */
    public function __construct(
        public string $user,
        public string $database,
        private ?\SensitiveParameterValue $password,
        private string $advice = '',
        public array $methods = [AuthenticationMethod::None, AuthenticationMethod::Scram],
        public ChannelBinding $channelBinding = ChannelBinding::Prefer,
        public bool $tls = false,
        public ?string $certificateHash = null,
        public SaltedPasswords $salted = new SaltedPasswords(),
    ) {}

    /** @throws AttemptFailedException when there is no password */
    public function password(): string
    {
        $password = $this->password?->getValue();
        if (!\is_string($password) || $password === '') {
            throw AttemptFailedException::authentication(
                "the server requests the password of the user '{$this->user}', but none is given{$this->advice}",
            );
        }

        return $password;
    }

    /** @throws AttemptFailedException when the options do not allow this method */
    public function ensureAllowed(AuthenticationMethod $method): void
    {
        if (!\in_array($method, $this->methods, true)) {
            $allowed = implode(', ', array_column($this->methods, 'value'));
            throw AttemptFailedException::authentication(
                "the server requests '{$method->value}' authentication, which is not allowed (allowed: {$allowed})",
            );
        }
        if ($this->channelBinding === ChannelBinding::Require && $method !== AuthenticationMethod::Scram) {
            throw AttemptFailedException::authentication(
                "channel binding is required, but '{$method->value}', which the server requests, does not support it",
            );
        }
    }
}
