<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use Spindle\Tests\OwnDirectory;
use Spindle\Tests\WebServer;

final class BuiltInServerTest extends AppContract
{
    use AsksByTcp;
    use FrontController;
    use OwnDirectory;
    use WebServer;

    private string $address = '';

    private function address(): string
    {
        if ($this->address === '') {
            $this->address = substr($this->startBuiltIn($this->frontController()), \strlen('http://'), -\strlen('/page'));
        }

        return $this->address;
    }
}
