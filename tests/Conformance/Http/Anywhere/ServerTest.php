<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\After;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\App\AppLoader;
use Spindle\Tests\LeavesNothing;

final class ServerTest extends AppContract
{
    use AsksByTcp;
    use LeavesNothing;

    private ?HttpServer $server = null;
    private string $address = '';

    #[After]
    protected function stopServer(): void
    {
        $this->server?->close();
        $this->server = null;
    }

    private function address(): string
    {
        if ($this->server === null) {
            $this->server = new HttpServer(AppLoader::load(self::APP));
            $this->address = substr($this->server->start('127.0.0.1:0')[0], \strlen('tcp://'));
        }

        return $this->address;
    }
}
