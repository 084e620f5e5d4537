<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;
use Spindle\Tests\WebServer;

final class BuiltInServerTest extends AppContract
{
    use AsksByTcp;
    use FrontController;
    use OwnDirectory;
    use WebServer;

    private string $address = '';

    public function testTheErrorThatEndsAnAnswerIsInPhpsLogAndNotInTheBody(): void
    {
        $this->address();
        $log = $this->path('error.log');
        $page = $this->frontController();
        file_put_contents($page, str_replace('<?php', "<?php ini_set('display_errors', '1'); ini_set('log_errors', '1'); ini_set('error_log', '{$log}');", (string) file_get_contents($page)));
        try {
            $this->ask('GET', '/short');
            self::fail('It is taken for whole');
        } catch (\UnexpectedValueException $short) {
            self::assertSame('The answer breaks off after 12 bytes of its body', $short->getMessage());
        }
        Eventually::holds(static fn(): bool => str_contains(implode(Text::lines($log)), 'The body of the answer has 12 bytes, and 100 were announced'), 'the log has it');
    }

    private function address(): string
    {
        if ($this->address === '') {
            $this->address = substr($this->startBuiltIn($this->frontController()), \strlen('http://'), -\strlen('/page'));
        }

        return $this->address;
    }
}
