<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench\Aircraft;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Aircraft\ComparisonOptions;
use Spindle\Bench\Aircraft\Contestant;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

final class ComparisonOptionsTest extends TestCase
{
    private const DEFAULTS = [
        'only' => 'all', 'n' => '10', 'clients' => '1', 'cycles' => '1', 'connections' => '1', 'rounds' => '1',
        'seconds' => '1', 'peers' => 'all', 'swoole' => '', ...Entrants::OPTIONS,
    ];

    public function testSwooleTakesPartWhereItsExtensionIsNamed(): void
    {
        $options = self::of('--swoole', __FILE__);

        self::assertSame(__FILE__, $options->swoole);
        self::assertContains(Contestant::Swoole, $options->peers());
        self::assertNull(Contestant::Swoole->missing($options->swoole));
        self::assertNull(Contestant::Spindle->missing(''));
    }

    public function testAFileOfSwooleThatIsNotThereIsNamed(): void
    {
        $this->expectExceptionObject(new UsageException("option --swoole: the file '/nowhere.so' does not exist"));

        self::of('--swoole', '/nowhere.so');
    }

    private static function of(string ...$arguments): ComparisonOptions
    {
        return ComparisonOptions::of(Options::parse(array_values($arguments), self::DEFAULTS));
    }
}
