<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\SupervisorOptions;

final class CertificateNamesTest extends TestCase
{
    #[TestWith([0])]
    #[TestWith(['5'])]
    #[TestWith([''])]
    #[TestWith(['example.com.'])]
    public function testANameThatNoClientCanRequestIsRefused(int|string $name): void
    {
        foreach ([HttpServerOptions::class, SupervisorOptions::class] as $options) {
            try {
                // @phpstan-ignore argument.type, argument.type (the constructor has to refuse it)
                new $options(certificates: ['example.com' => '1.pem', $name => '2.pem']);
                self::fail('The name is accepted');
            } catch (\ValueError $error) {
                self::assertSame(
                    'The keys of the option certificates must be host names without a trailing dot,'
                        . " such as \"example.com\", not \"{$name}\"",
                    $error->getMessage(),
                );
            }
        }
    }

    /** @param array<string, string>|null $value */
    #[TestWith([['local_cert' => '2.pem', 'local_pk' => '2.key'], 'array'])]
    #[TestWith([null, 'null'])]
    public function testAValueThatIsNoPathIsRefused(?array $value, string $type): void
    {
        foreach ([HttpServerOptions::class, SupervisorOptions::class] as $options) {
            try {
                // @phpstan-ignore argument.type, argument.type (the constructor has to refuse it)
                new $options(certificates: ['one.test' => '1.pem', 'two.test' => $value]);
                self::fail('The value is accepted');
            } catch (\ValueError $error) {
                self::assertSame(
                    'Each value of the option certificates must be the path of a PEM file with a certificate chain and'
                        . " its key. The value for \"two.test\" is of type {$type}",
                    $error->getMessage(),
                );
            }
        }
    }

    #[TestWith(['example.com'])]
    #[TestWith(['*.Example.com'])]
    #[TestWith(['1.2.3.4'])]
    public function testAHostNameIsAccepted(string $name): void
    {
        foreach ([HttpServerOptions::class, SupervisorOptions::class] as $options) {
            self::assertSame([$name => '1.pem'], (new $options(certificates: [$name => '1.pem']))->certificates);
        }
    }
}
