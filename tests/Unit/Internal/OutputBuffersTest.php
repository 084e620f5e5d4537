<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\OutputBuffers;

use function Amp\async;

final class OutputBuffersTest extends TestCase
{
    #[After]
    protected function leaveAllAsItIs(): void
    {
        OutputBuffers::$sharedLevel = null;
    }

    public function testBuffersAreSetAsideAndRestoredInTheirOrder(): void
    {
        $level = OutputBuffers::$sharedLevel = ob_get_level();
        ob_start();
        echo 'outer';
        ob_start(null, 4_096);
        echo 'inner';
        $buffers = OutputBuffers::setAside();

        self::assertSame($level, ob_get_level());
        OutputBuffers::restore($buffers);
        self::assertSame([$level + 2, 4_096], [ob_get_level(), ob_get_status()['chunk_size']]);
        self::assertSame(['inner', 'outer'], [ob_get_clean(), ob_get_clean()]);
    }

    public function testNothingIsSetAsideWhereNothingIsKeptApart(): void
    {
        ob_start();
        try {
            self::assertSame([], OutputBuffers::setAside());
        } finally {
            ob_end_clean();
        }
    }

    /** The fiber of a database statement waits in this way. */
    public function testAFiberThatIsResumedDirectlyKeepsItsOwn(): void
    {
        OutputBuffers::$sharedLevel = ob_get_level();
        $waiters = [new Waiter(), new Waiter()];
        $printing = [];
        foreach ($waiters as $name => $waiter) {
            $printing[] = async(static function () use ($name, $waiter): string {
                ob_start();
                echo "begin {$name} ";
                $waiter->wait();
                echo "end {$name}";

                return (string) ob_get_clean();
            });
        }
        EventLoop::delay(0.001, static function () use ($waiters): void {
            foreach ($waiters as $waiter) {
                $waiter->wake();
            }
        });

        self::assertSame(['begin 0 end 0', 'begin 1 end 1'], [$printing[0]->await(), $printing[1]->await()]);
    }
}
