<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\WebServer;

/** Tests pools in a web page, where PHP_BINARY may not be a command-line PHP and sockets belong to the server. */
final class WebServerTest extends TidyTestCase
{
    use OwnDirectory;
    use WebServer;

    private const PAGE = __DIR__ . '/web.php';

    public function testAPageOfTheBuiltInServerRunsTasks(): void
    {
        $address = $this->startBuiltIn(self::PAGE);
        for ($i = 0; $i < 3; ++$i) {
            self::check('cli-server', (string) file_get_contents($address));
        }
    }

    public function testAPageUnderFpmRunsTasksAndLeavesNothing(): void
    {
        $this->startFpm();
        for ($i = 0; $i < 3; ++$i) {
            self::check('fpm-fcgi', $this->askFpm(self::PAGE));
        }
    }

    #[RequiresPhpExtension('Zend OPcache')]
    public function testTheRefusalOfAClosureOfAChangedPageSaysWhenToRepeatTheRequest(): void
    {
        $loader = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $page = $this->file('page.php', "<?php require '{$loader}'; touch(__FILE__);" . <<<'PHP'
            try {
                (new Spindle\Worker\InlineExecutor())->submit(static fn() => 1)->await();
            } catch (Spindle\Worker\UnserializableException $refused) {
                echo $refused->getMessage();
            }
            PHP);

        self::assertMatchesRegularExpression(
            '/may have been loaded before .*: repeat the request after \d+ s, or submit an invokable object/',
            (string) file_get_contents($this->startBuiltIn($page)),
        );
    }

    private static function check(string $sapi, string $answer): void
    {
        $work = [
            'doubles' => ['a' => 2, 'b' => 4, 'c' => 6],
            'thrown' => [\DomainException::class, 'of a task'],
            'sapi' => 'cli',
            'request' => [],
            'shared' => [],
        ];

        self::assertSame(
            ['sapi' => $sapi, 'Process' => $work, 'Fork' => $work, 'left' => [[], [], []]],
            json_decode($answer, true),
            $answer,
        );
    }
}
