<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Text;

final class BuiltInServerTest extends AppContract
{
    use AsksByTcp;
    use CatchesThrown;
    use EndsItsScript;

    private static ?BuiltInHost $shared = null;

    /** A separate host for tests that need one. */
    private ?BuiltInHost $own = null;

    #[AfterClass]
    public static function stopShared(): void
    {
        self::$shared?->stop();
        self::$shared = null;
    }

    #[After]
    protected function stopOwn(): void
    {
        $this->own?->stop();
        $this->own = null;
    }

    public function testTheErrorThatEndsAnAnswerIsInPhpsLogAndNotInTheBody(): void
    {
        $this->own = new BuiltInHost(logs: true);
        $log = $this->own->log;
        $short = self::thrown(\UnexpectedValueException::class, fn() => $this->ask('GET', '/short'));
        self::assertSame('The response ended after 12 bytes of its body', $short->getMessage());
        Eventually::holds(
            static fn(): bool
                => str_contains(
                    implode(Text::lines($log)),
                    'The response body has 12 bytes instead of the announced 100',
                ),
            'the log has it',
        );
    }

    public function testTheErrorThatEndsAnAnswerIsInTheLogOfTheApplication(): void
    {
        $this->own = new BuiltInHost(logs: true, logger: <<<'PHP'
            new class extends Psr\Log\AbstractLogger {
                public function log($level, $message, array $context = []): void
                {
                    error_log("{$level} of {$context['target']}: {$message}");
                }
            }
            PHP);
        $log = $this->own->log;
        try {
            $this->ask('GET', '/short');
            self::fail('It is taken for whole');
        } catch (\UnexpectedValueException) {
        }
        $entry = 'error of /short: The handler of {method} {target} failed:'
            . ' The response body has 12 bytes instead of the announced 100';
        Eventually::holds(
            static fn(): bool => substr_count(implode(Text::lines($log)), $entry) === 1,
            'the log has it',
        );
    }

    public function testABodyLongerThanItsLengthIsInPhpsLog(): void
    {
        $this->own = new BuiltInHost(logs: true);
        $log = $this->own->log;
        self::assertSame('made', (string) $this->ask('GET', '/callback-cut?a')->getBody());
        Eventually::holds(
            static fn(): bool
                => str_contains(
                    implode(Text::lines($log)),
                    'Spindle: the response to GET /callback-cut?a was cut off after 4 bytes, its Content-Length.'
                        . ' Its body has at least 10 bytes',
                ),
            'the log has it',
        );
    }

    #[RequiresPhpExtension('zlib')]
    #[TestWith(['zlib.output_compression=On'])]
    #[TestWith(['output_handler=ob_gzhandler'])]
    public function testASettingThatCompressesOutputDoesNotChangeTheBody(string $setting): void
    {
        $this->own = new BuiltInHost(php: ['-d', $setting]);
        foreach (['/stream' => 'one,two', '/teapot' => 'short and stout'] as $target => $body) {
            self::assertSame($body, (string) $this->ask('GET', $target, ['Accept-Encoding' => 'gzip'])->getBody());
        }
    }

    private function address(): string
    {
        return ($this->own ?? self::$shared ??= new BuiltInHost())->address;
    }
}
